// Which strings may be keys of a Map that grows with the objects of many requests.

/**
 * V8 hashes a longer string by its length alone, so each of many such keys of one length is compared with all others: 2,000 keys
 * of 20 KB take seconds. No request can name one, because a request head has at most 16 KiB.
 */
const longest = 16_383

export const isFastKey = (text: string): boolean => text.length <= longest
