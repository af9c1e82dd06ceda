package recentwrites

// least is as how many bytes a write counts at least. The sizes of objects of less than 16 KiB are not known.
const least = 4 << 10

// weight is how many bytes stay of a write, as far as is known before: those that it sends, or those that its object
// has.
func weight(sent, known int64) int64 { return max(sent, known, least) }
