package recentwrites

// least is as how many bytes a write counts at least. Objects of less than 16 KiB are known by nobody.
const least = 4 << 10

// weight is how many bytes stay of a write, as far as is known before: those that it sends, of an unknown length the
// most, or those that its object has.
func weight(sent, most, known int64) int64 {
	if sent < 0 || sent > most {
		sent = most
	}
	return max(sent, known, least)
}
