// Package storedir looks at the files of the embedded store before the store is opened: a store that is damaged, or
// that is gone while the record beside it says that there was one, is named in one sentence and never handed to etcd,
// which would wait for ever, panic, or begin an empty mesh.
package storedir

import "fmt"

// Paths are where the files of a store are.
type Paths struct {
	// Identity is the record that stands beside the store and says which mesh is kept there.
	Identity string
	// Left is a mark that says that the others who had the store, too, go on without this one.
	Left string
	// Moved is a mark that says that the store was moved to an etcd cluster.
	Moved string
	// Store is etcd's directory; Database and Log are its database file and the folder of its write-ahead log.
	Store, Database, Log string
}

// Database is what the database file holds.
type Database struct {
	// Index is the last entry of the log that the database contains.
	Index uint64
	// Members is how many machines have the store.
	Members int
}

// Log is what the write-ahead log holds.
type Log struct {
	// Start is the entry that the log is read from, Last the last one in it.
	Start, Last uint64
	// Committed is the last entry that the log itself calls committed.
	Committed uint64
	// LastFile is the first entry of its last file, by that file's name.
	LastFile uint64
}

// Found is what a look at the files found. Database and Log are nil where there is no such file.
type Found struct {
	Paths    Paths
	Identity string
	// Left tells that the mark is there.
	Left bool
	// Moved says where the store was moved to; nil: it was not.
	Moved    *Moved
	Database *Database
	Log      *Log
}

// Damage is a store that cannot be used.
type Damage struct {
	// File is what is wrong or missing, What says how.
	File, What string
	// Store is etcd's directory, Identity the record beside it.
	Store, Identity string
}

// Error is one sentence that says what is wrong and what to do about it.
func (d *Damage) Error() string {
	return fmt.Sprintf("%s %s; restore the store (`keel store restore SNAPSHOT --replace`, or copy %s back from a "+
		"backup), or, to give up all objects and begin an empty mesh, move away both %s and %s", d.File, d.What,
		d.Store, d.Store, d.Identity)
}

// Damage is the error that says what is wrong with a file.
func (p Paths) Damage(file, format string, args ...any) *Damage {
	return &Damage{File: file, What: fmt.Sprintf(format, args...), Store: p.Store, Identity: p.Identity}
}

// Decide returns an error unless etcd may open the store: it is whole, or there was never one. A crash leaves the log
// ahead of the database, never behind it, since an entry is on disk before it is applied.
func Decide(f Found) error {
	p := f.Paths
	switch {
	case f.Left:
		return fmt.Errorf("%s was taken out of the store that it shared with other machines, as %s says: keel reset "+
			"--yes puts it aside", p.Store, p.Left)
	case f.Moved != nil:
		return fmt.Errorf("the store of %s was moved to the etcd cluster at %s, as %s says: keel store migrate --to "+
			"etcd, run again, has the mesh use it, and --to embedded moves the store back", p.Store, f.Moved.At(),
			p.Moved)
	case f.Database == nil && f.Log == nil:
		if f.Identity != "" {
			return p.Damage(p.Store, "holds no store, but %s says that the mesh %s was kept there", p.Identity,
				f.Identity)
		}
		return nil
	case f.Database == nil:
		return p.Damage(p.Database, "is missing, though its log is there")
	case f.Log == nil:
		// The first start makes the database before the log; a crash in between leaves one without anything in it.
		if f.Database.Index == 0 && f.Identity == "" {
			return nil
		}
		return p.Damage(p.Log, "holds no log, though its database is there")
	}
	return decideLog(p, *f.Database, *f.Log)
}

// MayOpen says what keeps a store that is whole from being opened alone, or among peers.
func (f Found) MayOpen(peers bool) error {
	if f.Database == nil || f.Database.Members < 2 || peers {
		return nil
	}
	return fmt.Errorf("%s is one of %d that only together hold the store: start its apiserver, or ask on another "+
		"machine that has one", f.Paths.Store, f.Database.Members)
}

func decideLog(p Paths, db Database, log Log) error {
	switch {
	case log.Last < log.Committed:
		return p.Damage(p.Log, "is cut off: it ends at entry %d, but entry %d was committed", log.Last, log.Committed)
	case log.LastFile > log.Last+1:
		return p.Damage(p.Log, "is cut off in the middle: entries %d to %d are missing", log.Last+1, log.LastFile-1)
	case log.Last < db.Index:
		return p.Damage(p.Log,
			"is cut off or older than the database: it ends at entry %d, but the database holds entry %d",
			log.Last, db.Index)
	case db.Index < log.Start:
		return p.Damage(p.Database, "is older than its log: it ends at entry %d, but the log begins after entry %d",
			db.Index, log.Start)
	}
	return nil
}

// Stored is what the opened store says of itself.
type Stored struct {
	// Identity is the identity that the store holds; Empty: it holds nothing at all.
	Identity string
	Empty    bool
}

// Identify decides which mesh an opened store keeps: the identity that both the store and the record beside it are to
// hold, of which fresh is the one for a new mesh.
func Identify(p Paths, recorded string, s Stored, fresh string) (string, error) {
	switch {
	case recorded == "" && s.Identity == "":
		return fresh, nil
	case recorded == "":
		return s.Identity, nil
	case s.Identity == "" && s.Empty:
		return "", p.Damage(p.Store, "is empty, but %s says that the mesh %s was kept there", p.Identity, recorded)
	case s.Identity == "", s.Identity == recorded:
		return recorded, nil
	default:
		return "", fmt.Errorf("%s keeps the mesh %s, but %s says %s; to go on with this store on purpose, move %s away",
			p.Store, s.Identity, p.Identity, recorded, p.Identity)
	}
}
