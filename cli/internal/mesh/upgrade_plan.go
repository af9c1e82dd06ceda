package mesh

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"keelson.dev/cli/internal/host"
	"keelson.dev/cli/internal/programs"
	"keelson.dev/cli/internal/upgrade"
)

// unpacked is the folder of programs from a package.
func (u *upgrading) unpacked() string { return filepath.Join(u.Layout.Upgrade(), "unpacked") }

// source returns the folder of the programs to go to; empty on the way back, for which they are kept.
func (u *upgrading) source(ctx context.Context) (folder string, err error) {
	switch {
	case u.Back:
		return "", nil
	case u.From == "":
		return u.Own, nil
	}
	if info, err := os.Stat(u.From); err == nil && info.IsDir() {
		return filepath.Abs(u.From)
	}
	err = u.step(ctx, "reading "+u.From, func(ctx context.Context) (err error) {
		folder, err = programs.Unpack(ctx, u.From, u.unpacked(), u.names())
		return err
	})
	return folder, err
}

// candidate examines a daemon. It returns nil for one that nobody has named and that has nothing to go back to.
func (u *upgrading) candidate(ctx context.Context, d *replaceable, source string) (*upgrade.Candidate, error) {
	in, err := u.observe(ctx, d)
	if err != nil {
		return nil, err
	}
	c := &upgrade.Candidate{Change: upgrade.Change{Daemon: d.name, Back: u.Back}}
	switch {
	case !u.Back:
		c.Fault = u.wantFrom(ctx, d, source)
	case in.Record.Phase != upgrade.Returned && slices.Contains(in.Kept, in.Record.From.Sum):
		d.wanted = in.Record.From
	case len(u.Asked) == 0:
		return nil, nil
	default:
		c.Fault = fmt.Sprintf("%s: nothing from before is kept in %s", d.name, u.Layout.Upgrade())
	}
	in.Wanted = d.wanted
	c.Begun, c.Rests = in.Begun(), upgrade.Decide(in).Action == upgrade.Rest
	from, to := in.Ends()
	c.From, c.To = upgrade.ParseVersion(from.Version), upgrade.ParseVersion(to.Version)
	if c.Begun && in.Record.Phase == upgrade.Returning {
		c.Fault = "" // it goes back, to whatever something else was wanted
	}
	return c, nil
}

// wantFrom has a daemon want the program in a folder. It returns a sentence if there is none for it.
func (u *upgrading) wantFrom(ctx context.Context, d *replaceable, source string) (fault string) {
	d.source = filepath.Join(source, d.program())
	var err error
	d.wanted, err = u.build(ctx, d, d.source)
	switch {
	case u.From != "" && d.folder() == packageFolder && source != packageFolder:
		return fmt.Sprintf("%s: what is in %s belongs to a package: install the one of the new version (apt install "+
			"./FILE or dnf install FILE), and run keel upgrade without --from", d.name, packageFolder)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("%s: there is no %s: give the folder or the package of the programs by --from", d.name,
			d.source)
	case err != nil:
		return fmt.Sprintf("%s: %v", d.name, err)
	}
	return ""
}

// placeProblems returns what keeps the programs of a plan from being written.
func (u *upgrading) placeProblems(p upgrade.Plan) (problems []string) {
	var copies []upgrade.Copy
	for _, change := range p.Changes {
		d := u.daemon(change.Daemon)
		if err := unix.Access(d.folder(), unix.W_OK); err != nil {
			problems = append(problems, fmt.Sprintf("%s: %s cannot be written to (%v): mount it writable first", d.name,
				d.folder(), err))
		}
		for _, one := range [][2]string{{u.sourceOf(d), d.folder()}, {d.unit.Path, u.Layout.Upgrade()}} {
			if c, err := copyOf(one[0], one[1]); err == nil { // else the copying says why
				copies = append(copies, c)
			}
		}
	}
	return append(problems, upgrade.CheckRoom(copies)...)
}

// copyOf describes the copy of a file to a folder.
func copyOf(file, folder string) (upgrade.Copy, error) {
	info, err := os.Stat(file)
	if err != nil {
		return upgrade.Copy{}, fmt.Errorf("looking at a program: %w", err)
	}
	disk, err := host.Disk(folder)
	return upgrade.Copy{Disk: disk.Device, Folder: folder, Bytes: uint64(info.Size()), Free: disk.BytesFree}, err
}

// sourceOf is where the wanted build of a daemon lies.
func (u *upgrading) sourceOf(d *replaceable) string {
	if d.source != "" {
		return d.source
	}
	return d.kept.Path(d.wanted.Sum)
}
