// Texts of the page.

const units = [["d", 86_400], ["h", 3_600], ["min", 60], ["s", 1]];

// duration writes seconds in one or two units, for example "3 h 5 min".
export function duration(seconds) {
  let left = Math.max(0, Math.round(seconds));
  const parts = [];
  for (const [name, size] of units) {
    const count = Math.floor(left / size);
    if (count > 0 || (size === 1 && parts.length === 0)) {
      parts.push(`${count} ${name}`);
      left -= count * size;
    }
    if (parts.length === 2 || (parts.length === 1 && count === 0)) {
      break;
    }
  }
  return parts.join(" ");
}

// age writes how long ago a time was, "" if there is none.
export function age(time) {
  const at = Date.parse(time ?? "");
  return Number.isNaN(at) ? "" : duration((Date.now() - at) / 1000);
}

// many writes a number with its word.
export function many(count, one, more = `${one}s`) {
  return `${count} ${count === 1 ? one : more}`;
}

// quantity writes an amount of memory as the API writes it, in a unit that people read.
export function quantity(text) {
  const match = /^(\d+)(Ki|Mi|Gi)?$/.exec(text ?? "");
  if (!match) {
    return text ?? "";
  }
  const bytes = Number(match[1]) * { "": 1, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30 }[match[2] ?? ""];
  return bytes >= 2 ** 30 ? `${(bytes / 2 ** 30).toFixed(1)} GiB` : `${Math.round(bytes / 2 ** 20)} MiB`;
}
