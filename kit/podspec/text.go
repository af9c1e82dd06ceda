package podspec

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// noNUL refuses text that no call of the kernel takes: a file's path, an argument or a variable ends at the first NUL.
func noNUL(value string, fldPath *field.Path) field.ErrorList {
	if strings.ContainsRune(value, 0) {
		return field.ErrorList{field.Invalid(fldPath, value, "must not contain a NUL character")}
	}
	return nil
}

func noNULs(values []string, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, value := range values {
		errs = append(errs, noNUL(value, fldPath.Index(i))...)
	}
	return errs
}

// validateProcess checks what a container's process is started with and where.
func validateProcess(c *corev1.Container, fldPath *field.Path) field.ErrorList {
	errs := noNULs(c.Command, fldPath.Child("command"))
	errs = append(errs, noNULs(c.Args, fldPath.Child("args"))...)
	errs = append(errs, noNUL(c.WorkingDir, fldPath.Child("workingDir"))...)
	return append(errs, noNUL(c.TerminationMessagePath, fldPath.Child("terminationMessagePath"))...)
}
