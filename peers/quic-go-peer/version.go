package main

import "runtime/debug"

// The version of a module that this program was built with.
func versionOf(module string) string {
	info, isKnown := debug.ReadBuildInfo()
	if !isKnown {
		return "unknown"
	}
	for _, dependency := range info.Deps {
		if dependency.Path == module {
			return dependency.Version
		}
	}
	return "unknown"
}
