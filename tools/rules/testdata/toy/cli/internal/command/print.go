package command

import (
	"fmt"
	"os"
)

// Print prints past the command in two ways.
func Print(text string) {
	fmt.Println(text)
	fmt.Fprintln(os.Stdout, text)
}
