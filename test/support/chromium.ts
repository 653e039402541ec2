// Finds a Chromium on this machine, or fetches Debian's with the libraries that the machine lacks.

import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { access, constants } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import { fetchDebian } from './fetch-debian.ts'

export type Chromium = {
  readonly executablePath: string
  readonly env: { readonly [name: string]: string }
}

const cache = join(import.meta.dirname, '../../node_modules/.cache/platform-tools')
const names = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']

/** undefined: there is none, and it cannot be fetched. */
export async function findChromium(): Promise<Chromium | undefined> {
  for (const directory of (process.env['PATH'] ?? '').split(delimiter))
    for (const name of names) {
      const executablePath = join(directory, name)
      const isThere = await access(executablePath, constants.X_OK).then(
        () => true,
        () => false,
      )
      if (isThere) return { executablePath, env: {} }
    }
  const found = unpacked()
  if (found) return found
  const release = /^VERSION_CODENAME=(\w+)$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1]
  if (release === undefined) return undefined
  const fonts = ['fonts-dejavu-core']
  await fetchDebian({ name: 'chromium', with: fonts, dependencies: 'missing', cache, suites: [[release]] })
  return unpacked()
}

function unpacked(): Chromium | undefined {
  const [program] = globSync('chromium-*/usr/lib/chromium/chromium', { cwd: cache })
  if (program === undefined) return undefined
  const root = join(cache, program.split('/')[0] ?? '')
  const libraries = [...new Set(globSync('usr/lib/**/*.so*', { cwd: root }).map(file => dirname(join(root, file))))]
  const fontconfig = join(root, 'platform-fonts.conf')
  mkdirSync(join(root, 'fonts-cache'), { recursive: true })
  writeFileSync(
    fontconfig,
    `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig><dir>${root}/usr/share/fonts</dir><dir>/usr/share/fonts</dir><cachedir>${root}/fonts-cache</cachedir></fontconfig>\n`,
  )
  return {
    executablePath: join(cache, program),
    env: { LD_LIBRARY_PATH: libraries.join(delimiter), FONTCONFIG_FILE: fontconfig },
  }
}
