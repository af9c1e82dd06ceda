// Package upgrade decides how the daemons of a machine are replaced by those of another version: whether that may be
// now, in which order, what the next step is from what lies on the disk and runs, and which machine is next. Everything
// here is computed from values; package mesh examines the machine and the mesh and carries the steps out.
//
//keelson:decision
package upgrade
