package bind

// Same compares a node with itself where it meant two.
func Same(node string) bool { return node == node }
