// Package seconds turns the numbers of seconds that the API and flags hold into durations. For most of them the API
// takes any number of 64 bits, of which a duration holds only those of 292 years.
//
//keelson:decision
package seconds

import "time"

// Most is the longest time that a number of seconds stands for, a hundred years: more than any number of 32 bits,
// and little enough that sums with other durations and with times do not overflow.
const Most = 100 * 365 * 24 * 60 * 60

// Of returns n seconds as a duration, at most Most of them in either direction.
func Of[N int | int32 | int64](n N) time.Duration {
	return time.Duration(min(max(int64(n), -Most), Most)) * time.Second
}

// AtLeastNone returns n seconds as a duration, none where n is negative.
func AtLeastNone[N int | int32 | int64](n N) time.Duration { return Of(max(n, 0)) }
