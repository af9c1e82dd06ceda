package class

// Buckets returns how many buckets of nodes the class keeps, empty ones included.
func (c *Class) Buckets() int { return len(c.index.buckets) }
