package fit

func Undocumented() error { return nil }
