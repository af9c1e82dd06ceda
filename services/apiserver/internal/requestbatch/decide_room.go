package requestbatch

// mayBegin is whether one more request of a batch may begin. underWay are those that have begun; held is how many bytes
// their answers and those that wait to be sent have taken, largest how many one has, room how many all may. There must
// be room if each takes as much; otherwise answers are sent first. Where there are none, waiting frees nothing.
func mayBegin(underWay, held, largest, room int64) bool {
	return underWay == 0 && held == 0 || held+(underWay+1)*largest <= room
}

// weight is how many bytes a batch counts while it is read: those that it says it has, or the most that it may have
// where it does not say. The least is what a request takes without a body.
func weight(length, least, most int64) int64 {
	if length < 0 {
		return most
	}
	return max(length, least)
}
