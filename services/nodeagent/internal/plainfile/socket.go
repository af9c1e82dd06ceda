package plainfile

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// ErrNotSocket is wrapped by errors about what is no unix socket or is reached through a symbolic link.
var ErrNotSocket = errors.New("not a unix socket that is reached without symbolic links")

// Socket opens a handle of a unix socket, whose file information distinguishes it from a socket that replaces it.
// It does not connect.
func (r Root) Socket(path string) (*os.File, error) {
	fd, err := r.openAt(path, unix.O_PATH, 0)
	if errors.Is(err, ErrNotPlain) {
		err = &fs.PathError{Op: "open", Path: path, Err: ErrNotSocket}
	}
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), path)
	info, err := file.Stat()
	if err == nil && info.Mode().Type() != fs.ModeSocket {
		err = &fs.PathError{Op: "open", Path: path, Err: ErrNotSocket}
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// DialSocket connects to a unix socket. The path may be longer than a socket address.
func (r Root) DialSocket(ctx context.Context, path string) (net.Conn, error) {
	file, err := r.Socket(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var dialer net.Dialer
	return dialer.DialContext(ctx, "unix", magicLink(int(file.Fd())))
}
