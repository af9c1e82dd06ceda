package fairshare

// part says which fraction of what others leave one client may have: of all a quarter, of what another has left of it a
// quarter again. However many names somebody has, something is left for the next.
const part = 4

// fits is whether a client that has taken mine may take more, of a total of which others have taken theirs.
func fits(total, others, mine, more int64) bool {
	return more <= 0 || mine+more <= (total-others)/part
}
