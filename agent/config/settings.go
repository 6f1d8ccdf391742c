package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// setting is a field of a Config that flags and the environment can set.
type setting struct {
	name  string
	value reflect.Value
}

// settings are the fields of the config but the handlers, which only the file has.
func (c *Config) settings() []setting { return settingsOf(reflect.ValueOf(c).Elem()) }

func settingsOf(v reflect.Value) (settings []setting) {
	for i := range v.NumField() {
		switch name := v.Type().Field(i).Tag.Get("yaml"); name {
		case "handlers":
		case ",inline":
			settings = append(settings, settingsOf(v.Field(i))...)
		default:
			settings = append(settings, setting{name, v.Field(i)})
		}
	}
	return settings
}

// Names returns the names of the settings that flags and the environment can set.
func Names() (names []string) {
	for _, s := range new(Config).settings() {
		names = append(names, s.name)
	}
	return names
}

// Differing returns the names of the settings that differ between two configs. Handlers do not count.
func Differing(a, b *Config) []string {
	names := []string{}
	of := b.settings()
	for i, s := range a.settings() {
		if !reflect.DeepEqual(s.value.Interface(), of[i].value.Interface()) {
			names = append(names, s.name)
		}
	}
	return names
}

// set parses a value: a list has line breaks or else commas, tags are key=value, and seeds of
// zones zone=seed.
func (s setting) set(text string) error {
	switch field := s.value.Addr().Interface().(type) {
	case *string:
		*field = text
	case *bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", text)
		}
		*field = b
	case *int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("%q is not a number", text)
		}
		*field = n
	case *time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("%q is not a time: write 30s", text)
		}
		*field = d
	case *[]string:
		*field = splitList(text)
	case *map[string][]string:
		*field = make(map[string][]string)
		for _, part := range splitList(text) {
			zone, seed, ok := strings.Cut(part, "=")
			if !ok {
				return fmt.Errorf("%q is not a seed of a zone: write zone=host:port", part)
			}
			(*field)[zone] = append((*field)[zone], seed)
		}
	case *map[string]string:
		*field = make(map[string]string)
		for _, tag := range splitList(text) {
			key, value, ok := strings.Cut(tag, "=")
			if !ok {
				return fmt.Errorf("%q is not a tag: write key=value", tag)
			}
			(*field)[key] = value
		}
	default:
		return fmt.Errorf("%s can be set in the file only", s.name)
	}
	return nil
}

func splitList(text string) []string {
	separator := ","
	if strings.Contains(text, "\n") {
		separator = "\n" // a command of a seed may have commas
	}
	parts := strings.Split(text, separator)
	for i, part := range parts {
		parts[i] = strings.TrimSpace(part)
	}
	return slices.DeleteFunc(parts, func(part string) bool { return part == "" })
}
