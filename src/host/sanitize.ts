// Replaces control characters in text for the terminal, and shortens arguments in messages.

/** Replaces all control characters. */
export const plain = (text: string) => text.replace(/[\x00-\x1f\x7f-\x9f]/g, '�')

/** Keeps line breaks and tabs. */
export const plainLines = (text: string) => text.replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, '�')

// The colour sequences that `paint` writes.
const ours = /^\x1b\[(?:0|1|31|32|33)m/

/** For terminals: no sequence may move the cursor, set a title or inject input. Keeps our own colours. */
export const forTerminal = (text: string) =>
  text.replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, (found, at: number) =>
    found === '\x1b' && ours.test(text.slice(at, at + 6)) ? found : '�',
  )

/** Quotes an argument in a message. Does not repeat a long one, which would hide the message and may be a misplaced secret. */
export const quoted = (word: string) => (isLong(word) ? `a word of ${word.length} characters` : `"${word}"`)

/** Like `quoted`, without the quotes. */
export const shortened = (word: string) => (isLong(word) ? `(${quoted(word)})` : word)

const isLong = (word: string) => word.length > 64
