// pch.cpp: exists so that the precompiled headers have a target of their own.
