// Text of others, for people: control characters would move the cursor of whoever looks. Everything that is printed for people goes through it.

/** Nothing but what can be seen. */
export const plain = (text: string) => text.replace(/[\x00-\x1f\x7f-\x9f]/g, '�')

/** The same for a message of several lines, which may have tabs. */
export const plainLines = (text: string) => text.replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, '�')

// What `paint` writes: the colours in use, and their end.
const ours = /^\x1b\[(?:0|1|31|32|33)m/

/** Output for a terminal: nothing in it may move the cursor, set a title or answer for the person. Our own colours stay. */
export const forTerminal = (text: string) =>
  text.replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, (found, at: number) =>
    found === '\x1b' && ours.test(text.slice(at, at + 6)) ? found : '�',
  )

/** A word of who asks, within a message. A long one hides the message, and may be a secret that came into the wrong place. */
export const quoted = (word: string) => (isLong(word) ? `a word of ${word.length} characters` : `"${word}"`)

/** The same without the quotes. */
export const shortened = (word: string) => (isLong(word) ? `(${quoted(word)})` : word)

const isLong = (word: string) => word.length > 64
