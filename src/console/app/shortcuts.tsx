// Keyboard shortcuts: ⌘K palette, / filter, g and a letter to jump, ? help.

import { useNavigate } from '@tanstack/react-router'
import { useEffect, useRef } from 'react'
import { text } from '../text/common.ts'
import { Modal } from '../ui/dialog.tsx'
import { Facts } from '../ui/parts.tsx'
import { allPlaces } from './places.ts'

const chordWithin = 1200

/** Keys in fields and editors belong to them. */
const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement &&
  (target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName))

/** The list handles these keys itself once it has the focus. */
function focusList(): void {
  const list = document.querySelector<HTMLElement>('[role="grid"]')
  if (!list?.contains(document.activeElement)) list?.focus()
}

export function useShortcuts({ find, help }: { readonly find: () => void; readonly help: () => void }): void {
  const navigate = useNavigate()
  const actions = useRef({ find, help })
  actions.current = { find, help }
  useEffect(() => {
    let begun = Number.NEGATIVE_INFINITY
    const onKey = (event: KeyboardEvent) => {
      const isFind = event.key.toLowerCase() === 'k' && (event.metaKey || event.ctrlKey)
      if (isFind) event.preventDefault()
      // A dialog may show a key that is gone when another page opens.
      if (document.querySelector('[role="dialog"], [role="menu"]')) return
      if (isFind) return actions.current.find()
      if (event.metaKey || event.ctrlKey || event.altKey || isTyping(event.target)) return
      if (event.timeStamp - begun < chordWithin) {
        begun = Number.NEGATIVE_INFINITY
        const place = allPlaces.find(({ keys }) => keys === `g ${event.key}`)
        if (place) void navigate({ to: place.to })
        return
      }
      if (event.key === 'g') begun = event.timeStamp
      else if (event.key === '?') actions.current.help()
      else if (event.key === 'j' || event.key === 'k') focusList()
      else if (event.key === '/') {
        event.preventDefault()
        document.querySelector<HTMLElement>('[data-shortcut="search"]')?.focus()
      }
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [navigate])
}

export function ShortcutHelp({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const jumps = allPlaces.flatMap(({ keys, label }) => (keys ? [[keys, label] as const] : []))
  const rows = [...text.shortcuts, ...jumps]
  return (
    <Modal title={text.keyboard} isOpen={isOpen} onClose={onClose}>
      <Facts of={rows} />
    </Modal>
  )
}
