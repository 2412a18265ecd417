//go:build race

package tlsf_test

const raceEnabled = true
