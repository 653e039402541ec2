// Text of others, for people: control characters would move the cursor of whoever looks. Everything that is printed for people goes through it.

/** Nothing but what can be seen. */
export const plain = (text: string) => text.replace(/[\x00-\x1f\x7f-\x9f]/g, '�')

/** The same for a message of several lines. */
export const plainLines = (text: string) => text.split('\n').map(plain).join('\n')
