package csidriver

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// loopControl is the kernel's file for making loop devices.
const loopControl = "/dev/loop-control"

// NoDevices returns why the machine cannot have loop devices; nil if it can.
func NoDevices() error {
	control, err := os.OpenFile(loopControl, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return control.Close()
}

// attach makes a loop device of a file. It goes by itself when nobody has it open, so that none is left behind by a
// test that dies.
func attach(image string) (*os.File, error) {
	control, err := os.OpenFile(loopControl, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer control.Close()
	file, err := os.OpenFile(image, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	for { // another process may be faster
		number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("looking for a free loop device: %w", err)
		}
		loop, err := os.OpenFile(fmt.Sprint("/dev/loop", number), os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		err = unix.IoctlLoopConfigure(int(loop.Fd()), &unix.LoopConfig{Fd: uint32(file.Fd()),
			Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR}})
		if err == nil {
			return loop, nil
		}
		loop.Close()
		if !errors.Is(err, unix.EBUSY) {
			return nil, fmt.Errorf("making a loop device of %s: %w", image, err)
		}
	}
}

// resize gives a loop device the size that its file now has.
func resize(loop *os.File) error { return unix.IoctlSetInt(int(loop.Fd()), unix.LOOP_SET_CAPACITY, 0) }

// detach ends a loop device once what was written to it is in its file.
func detach(loop *os.File) error {
	return errors.Join(loop.Sync(), unix.IoctlSetInt(int(loop.Fd()), unix.LOOP_CLR_FD, 0), loop.Close())
}
