// The palette: jump to a page or an object by typing.

import { useNavigate } from '@tanstack/react-router'
import { type KeyboardEvent, useEffect, useMemo, useState } from 'react'
import { listPath, objectPath, oneOf, shownKinds } from '../data/places.ts'
import { loadedRows } from '../data/rows.ts'
import { text } from '../text/common.ts'
import { Modal } from '../ui/dialog.tsx'
import style from './palette.module.css'
import { allPlaces } from './places.ts'

type Hit = {
  readonly to: string
  readonly label: string
  readonly hint: string
  readonly search?: { readonly q: string }
}

const maxHits = 30

export function Palette({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const [typed, setTyped] = useState('')
  const [active, setActive] = useState(0)
  const navigate = useNavigate()
  const hits = useMemo(() => (isOpen ? hitsFor(typed.trim()) : []), [isOpen, typed])
  useEffect(() => {
    if (!isOpen) return
    setTyped('')
    setActive(0)
  }, [isOpen])
  useEffect(() => document.getElementById(`palette-${active}`)?.scrollIntoView({ block: 'nearest' }), [active])
  const open = (hit: Hit | undefined) => {
    if (!hit) return
    onClose()
    void navigate({ to: hit.to, search: hit.search ?? {} })
  }
  const onKey = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
    if (step !== 0) {
      event.preventDefault()
      setActive((active + step + hits.length) % Math.max(1, hits.length))
    } else if (event.key === 'Enter') open(hits[active])
  }
  return (
    <Modal title={text.search} isOpen={isOpen} onClose={onClose}>
      <input
        className={style.input}
        role="combobox"
        aria-expanded
        aria-controls="palette-hits"
        aria-activedescendant={hits[active] ? `palette-${active}` : undefined}
        aria-label={text.search}
        // biome-ignore lint/a11y/noAutofocus: the dialog exists to type here
        autoFocus
        value={typed}
        onChange={event => {
          setTyped(event.currentTarget.value)
          setActive(0)
        }}
        onKeyDown={onKey}
      />
      <div id="palette-hits" className={style.list} role="listbox" aria-label={text.search} tabIndex={-1}>
        {hits.map((hit, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the combobox handles the keys
          <div
            key={`${hit.to} ${hit.hint}`}
            id={`palette-${index}`}
            className={style.item}
            role="option"
            tabIndex={-1}
            aria-selected={index === active}
            onClick={() => open(hit)}
          >
            <span>{hit.label}</span>
            <span className={style.kind}>{hit.hint}</span>
          </div>
        ))}
      </div>
    </Modal>
  )
}

/** Objects of lists that were opened are found by name. For others, every list can be searched. */
function hitsFor(typed: string): readonly Hit[] {
  const wanted = typed.toLowerCase()
  const pages = allPlaces
    .filter(({ label }) => label.toLowerCase().includes(wanted))
    .map(({ to, label, keys = '' }) => ({ to, label, hint: keys }))
  if (typed === '') return pages
  const objects = shownKinds.flatMap(kind =>
    loadedRows(kind)
      .filter(({ name }) => name.toLowerCase().includes(wanted))
      .slice(0, 8)
      .map(row => ({ to: objectPath(kind, row), label: row.name, hint: oneOf(kind) })),
  )
  const lists = shownKinds.map(kind => ({
    to: listPath(kind),
    label: text.find(typed),
    hint: text.inList(kind.plural),
    search: { q: typed },
  }))
  return [...pages, ...objects, ...lists].slice(0, maxHits)
}
