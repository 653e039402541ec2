// Loads undici, the only HTTP/1.1 client of this program, with the first request.

import { createRequire } from 'node:module'
import type { Client, Pool } from 'undici'

type Undici = { readonly Client: typeof Client; readonly Pool: typeof Pool }

const require = createRequire(import.meta.url)
let loaded: Undici | undefined

/** Loads two files and not the package: its index also loads fetch, mocks and caches, and takes three times as long. */
export function loadUndici(): Undici {
  loaded ??= {
    Client: require('undici/lib/dispatcher/client.js') as typeof Client,
    Pool: require('undici/lib/dispatcher/pool.js') as typeof Pool,
  }
  return loaded
}
