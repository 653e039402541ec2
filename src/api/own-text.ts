// Copies a part of a text, for structures that outlive the text.

/**
 * V8 keeps the whole text in memory for a part of it that has at least this many characters. A request of a megabyte could so
 * leave a megabyte behind for each name that it mentions.
 */
const shared = 13

/** A copy of a part of a text. */
export const ownText = (part: string): string => (part.length < shared ? part : ` ${part}`.slice(1))
