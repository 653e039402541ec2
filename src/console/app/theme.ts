// Light, dark, or as the system says. The choice stays in this browser.

import { useSyncExternalStore } from 'react'

export type Theme = 'system' | 'light' | 'dark'

const stored = 'platform-console-theme'
const system = matchMedia('(prefers-color-scheme: dark)')
const callbacks = new Set<() => void>()

const isTheme = (value: string | null): value is Theme => value === 'light' || value === 'dark' || value === 'system'

function current(): Theme {
  const value = localStorage.getItem(stored)
  return isTheme(value) ? value : 'system'
}

export function applyTheme(): void {
  const theme = current()
  document.documentElement.dataset['theme'] = theme === 'system' ? (system.matches ? 'dark' : 'light') : theme
  for (const callback of callbacks) callback()
}

export function setTheme(theme: Theme): void {
  localStorage.setItem(stored, theme)
  applyTheme()
}

system.addEventListener('change', applyTheme)

export const useTheme = (): Theme =>
  useSyncExternalStore(callback => {
    callbacks.add(callback)
    return () => callbacks.delete(callback)
  }, current)
