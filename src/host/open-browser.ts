// Opens a URL in the browser of the user: $BROWSER, else the one of the desktop.

import { spawn } from 'node:child_process'
import { once } from 'node:events'

type Env = { readonly [name: string]: string | undefined }

/** Returns false if no browser could be started. Does not wait for the browser, and does not end it. */
export async function openBrowser(url: string, env: Env, platform: string = process.platform): Promise<boolean> {
  for (const command of browsersOf(url, env, platform)) if (await isStarted(command, env)) return true
  return false
}

/** $BROWSER is a list with colons, as xdg-open reads it. `%s` stands for the URL, which is otherwise the last argument. */
function browsersOf(url: string, env: Env, platform: string): string[][] {
  const { BROWSER: own } = env
  if (own !== undefined)
    return own.split(':').flatMap(one => {
      const words = one.trim().split(/\s+/).filter(Boolean)
      if (!words.length) return []
      return [words.some(word => word.includes('%s')) ? words.map(word => word.replaceAll('%s', url)) : [...words, url]]
    })
  if (platform === 'darwin') return [['open', url]]
  // Without a display, xdg-open would start a text browser in this terminal.
  return env['DISPLAY'] || env['WAYLAND_DISPLAY'] ? [['xdg-open', url]] : []
}

async function isStarted([command = '', ...args]: readonly string[], env: Env): Promise<boolean> {
  try {
    // Its own process group, so that Ctrl-C here does not close the browser.
    const child = spawn(command, args, { stdio: 'ignore', detached: true, env: env as NodeJS.ProcessEnv })
    child.unref()
    await once(child, 'spawn')
    return true
  } catch {
    return false
  }
}
