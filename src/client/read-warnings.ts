// The texts of Warning headers (RFC 9111 §5.5); connect.ts hands them to whoever wants to know.

const one = /\b299 \S+ "((?:[^"\\]|\\.)*)"/g

/** Several headers arrive as one, separated by commas; a text may hold commas and escaped quotes. */
export function readWarnings(header: string | null): string[] {
  return [...(header ?? '').matchAll(one)].map(match => fromBytes((match[1] ?? '').replace(/\\(.)/g, '$1')))
}

/** Header values are bytes, shown as one character each; the text in them is UTF-8. */
function fromBytes(text: string): string {
  if (!/[^\x00-\x7f]/.test(text) || /[^\x00-\xff]/.test(text)) return text
  try {
    const bytes = Uint8Array.from(text, character => character.charCodeAt(0))
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return text
  }
}
