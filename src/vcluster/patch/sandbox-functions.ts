// Implements atob, btoa and virtualToHostDNS for expressions (SPEC §2.10). Sent into QuickJS as source text.

export type Dns = { readonly vcluster: string; readonly namespace: string; readonly clusterDomain: string }
export type RealmFunctions = {
  readonly atob: (given: unknown) => string
  readonly btoa: (given: unknown) => string
  /** With undefined, in multi-namespace mode, the function throws. */
  readonly makeDns: (dns: Dns | undefined) => (given: unknown) => string
}

/** Must be self-contained, because QuickJS has no access to this module, not even a hash function. */
export function makeFunctions(): RealmFunctions {
  const fail = (message: string): never => {
    throw new TypeError(message)
  }
  const nameOf = (given: unknown) => (given === null ? 'null' : typeof given)
  const wellFormed = (text: string) => {
    for (const letter of text) {
      const code = letter.codePointAt(0) as number
      if (code >= 0xd800 && code <= 0xdfff) fail('btoa: the text has a lone surrogate')
    }
    return text
  }
  const bytesOf = (text: string): number[] => {
    const bytes: number[] = []
    const escaped = encodeURIComponent(wellFormed(text))
    for (let at = 0; at < escaped.length; at++) {
      const isByte = escaped[at] === '%'
      bytes.push(isByte ? Number.parseInt(escaped.slice(at + 1, at + 3), 16) : escaped.charCodeAt(at))
      if (isByte) at += 2
    }
    return bytes
  }
  const asText = (name: string, given: unknown): string => {
    if (typeof given === 'string') return given
    if (typeof given === 'number' || typeof given === 'boolean') return `${given}`
    return fail(`${name}: expected a string, got ${nameOf(given)}`)
  }
  const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
  const btoa = (given: unknown): string => {
    const bytes = bytesOf(asText('btoa', given))
    let out = ''
    for (let at = 0; at < bytes.length; at += 3) {
      const [one = 0, two, three] = bytes.slice(at, at + 3)
      out += `${digits[one >> 2]}${digits[((one & 3) << 4) | ((two ?? 0) >> 4)]}`
      out += two === undefined ? '=' : digits[((two & 15) << 2) | ((three ?? 0) >> 6)]
      out += three === undefined ? '=' : digits[three & 63]
    }
    return out
  }
  const atob = (given: unknown): string => {
    const text = asText('atob', given).replace(/[\t\n\f\r ]/g, '')
    const bare = text.replace(/={1,2}$/, '')
    if (/[^A-Za-z0-9+/]/.test(bare) || bare.length % 4 === 1 || (bare !== text && text.length % 4 !== 0))
      fail('atob: not base64: expected A–Z a–z 0–9 + / and = at the end')
    let escaped = ''
    let bits = 0
    let buffer = 0
    for (const letter of bare) {
      buffer = (buffer << 6) | digits.indexOf(letter)
      bits += 6
      if (bits < 8) continue
      bits -= 8
      escaped += `%${((buffer >> bits) & 255).toString(16).padStart(2, '0')}`
      buffer &= (1 << bits) - 1
    }
    try {
      return decodeURIComponent(escaped)
    } catch {
      return fail('atob: the decoded bytes are not valid UTF-8')
    }
  }

  /** SHA-256 (FIPS 180-4) as hex digits, for names over 63 bytes. */
  const sha256 = (text: string): string => {
    const primes: number[] = []
    for (let n = 2; primes.length < 64; n++) if (primes.every(prime => n % prime !== 0)) primes.push(n)
    const fraction = (root: number) => ((root - Math.floor(root)) * 2 ** 32) | 0
    const k = primes.map(prime => fraction(Math.cbrt(prime)))
    const h = primes.slice(0, 8).map(prime => fraction(Math.sqrt(prime)))
    const bytes = bytesOf(text)
    const bits = bytes.length * 8
    bytes.push(128)
    while (bytes.length % 64 !== 56) bytes.push(0)
    for (let shift = 56; shift >= 0; shift -= 8) bytes.push(shift > 24 ? 0 : (bits >>> shift) & 255)
    const rotate = (x: number, by: number) => (x >>> by) | (x << (32 - by))
    for (let block = 0; block < bytes.length; block += 64) {
      const w: number[] = []
      for (let t = 0; t < 64; t++) {
        const [a = 0, b = 0] = [w[t - 15], w[t - 2]]
        w[t] =
          t < 16
            ? [0, 1, 2, 3].reduce((sum, at) => (sum << 8) | (bytes[block + t * 4 + at] as number), 0)
            : ((w[t - 16] as number) +
                (rotate(a, 7) ^ rotate(a, 18) ^ (a >>> 3)) +
                (w[t - 7] as number) +
                (rotate(b, 17) ^ rotate(b, 19) ^ (b >>> 10))) |
              0
      }
      let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, last = 0] = h
      for (let t = 0; t < 64; t++) {
        const one =
          last +
          (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
          ((e & f) ^ (~e & g)) +
          (k[t] as number) +
          (w[t] as number)
        const two = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))
        ;[last, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + two) | 0]
      }
      for (const [at, word] of [a, b, c, d, e, f, g, last].entries()) h[at] = ((h[at] as number) + word) | 0
    }
    return h.map(word => (word >>> 0).toString(16).padStart(8, '0')).join('')
  }

  const isLabel = (text: string | undefined) =>
    !!text && text.length <= 63 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(text)
  const makeDns =
    (dns: Dns | undefined) =>
    (given: unknown): string => {
      if (!dns) return fail('virtualToHostDNS is not available in multi-namespace mode, where names are not translated')
      const expected = `expected <name>.<namespace>.svc or <name>.<namespace>.svc.${dns.clusterDomain}`
      if (typeof given !== 'string') return fail(`virtualToHostDNS: ${expected}, got ${nameOf(given)}`)
      const [name, namespace, svc, ...domain] = given.length > 253 ? [] : given.split('.')
      const isDomain = domain.length === 0 || domain.join('.') === dns.clusterDomain
      if (!isLabel(name) || !isLabel(namespace) || svc !== 'svc' || !isDomain)
        fail(`virtualToHostDNS: ${expected}, got ${JSON.stringify(given.slice(0, 100))}`)
      const full = `${name}-x-${namespace}-x-${dns.vcluster}`
      const short = full.length <= 63 ? full : `${full.slice(0, 52)}-${sha256(full).slice(0, 10)}`.replaceAll('.-', '-')
      return `${short}.${dns.namespace}.svc.${dns.clusterDomain}`
    }

  return { atob, btoa, makeDns }
}
