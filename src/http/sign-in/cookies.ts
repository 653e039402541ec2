// Cookies of sign-in. `__Host-` binds them to this host, over TLS or loopback, for every path.

/** The value of a cookie; undefined: absent. A second cookie with the name is an attack or a mistake, so none counts. */
export function cookieIn(header: string | undefined, name: string): string | undefined {
  if (header === undefined || header.length > maxHeader) return undefined
  const found = header.split(';').flatMap(part => {
    const at = part.indexOf('=')
    return at !== -1 && part.slice(0, at).trim() === name ? [part.slice(at + 1).trim()] : []
  })
  const [value] = found
  if (found.length !== 1 || !value) return undefined
  try {
    return decodeURIComponent(value)
  } catch {
    return undefined
  }
}

const maxHeader = 16 * 1024

/** `seconds`: 0 deletes it; undefined: until the browser closes. */
export function setCookie(name: string, value: string, seconds: number | undefined): string {
  const age = seconds === undefined ? '' : `; Max-Age=${Math.floor(seconds)}`
  // Lax, because the redirect of a provider comes from another site.
  return `${name}=${encodeURIComponent(value)}${age}; Path=/; Secure; HttpOnly; SameSite=Lax`
}

/** Tells the console that somebody signed out, so that it deletes drafts. Scripts of the page can read it; it holds nothing. */
export const signedOutCookie = 'platform-signed-out=1; Path=/; Max-Age=86400; SameSite=Lax'
