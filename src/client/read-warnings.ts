// Parses Warning headers (RFC 9111 §5.5).

const warning = /\b299 \S+ "((?:[^"\\]|\\.)*)"/g

/** Repeated headers arrive joined by commas. A text may contain commas and escaped quotes. */
export function readWarnings(header: string | null): string[] {
  return [...(header ?? '').matchAll(warning)].map(match => fromBytes((match[1] ?? '').replace(/\\(.)/g, '$1')))
}

/** fetch decodes header bytes as Latin-1, but the text is UTF-8. */
function fromBytes(text: string): string {
  if (!/[^\x00-\x7f]/.test(text) || /[^\x00-\xff]/.test(text)) return text
  try {
    const bytes = Uint8Array.from(text, character => character.charCodeAt(0))
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return text
  }
}
