package fairshare

// part says which fraction of what others leave one client may have: of all a quarter, of what another has left of it a
// quarter again.
const part = 4

// room is how many more a client may take that has mine, of a total of which others have taken theirs. A client with
// none may take the least, whatever others have: however many names a client has, it locks no other out.
func room(total, least, others, mine int64) int64 {
	may := (total-others)/part - mine
	if mine == 0 {
		may = max(may, least)
	}
	return max(may, 0)
}
