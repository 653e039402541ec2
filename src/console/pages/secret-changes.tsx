// The changes of a secret before they are saved, and the choice when somebody else changed the same keys.

import { useState } from 'react'
import type { Resource } from '../../api/object.ts'
import { type DataChange, keyNames, sizeOf, versionOf } from '../data/secrets.ts'
import { text } from '../text/common.ts'
import { secretText } from '../text/secrets.tsx'
import { Button } from '../ui/button.tsx'
import { DialogButtons, Modal } from '../ui/dialog.tsx'
import { bytes } from '../ui/format.ts'
import { Card, Note } from '../ui/parts.tsx'
import style from './secret-data.module.css'

export type Draft = { readonly base: Resource; readonly change: DataChange }

/** The difference before saving. Values stay hidden. */
export function Changes({ draft: { base, change }, current }: { draft: Draft; current: Resource }) {
  const before = new Set(keyNames(base))
  const entries = Object.entries(change)
  return (
    <Card title={secretText.yourChange(versionOf(base))}>
      <p>{secretText.changedKeys(entries.length)}</p>
      <div className={style.diff}>
        {entries.map(([key, value]) => (
          <div key={key} className={value === null ? style.removed : style.added}>
            <span>{value === null ? '−' : before.has(key) ? '~' : '+'}</span>
            <span>{key}</span>
            <span>{value === null ? secretText.removed : `•••••••• ${bytes(sizeOf(value))}`}</span>
          </div>
        ))}
      </div>
      {base.metadata.uid !== current.metadata.uid ? (
        <Note tone="warn">{secretText.createdAgain}</Note>
      ) : (
        versionOf(base) !== versionOf(current) && <Note tone="warn">{secretText.changedMeanwhile}</Note>
      )}
    </Card>
  )
}

type ConflictDialogProps = {
  readonly keys: readonly string[]
  /** False: the history no longer has all changes of others. */
  readonly isKnown: boolean
  readonly onChoose: (mine: ReadonlySet<string>) => void
  readonly onCancel: () => void
}

export function ConflictDialog({ keys, isKnown, onChoose, onCancel }: ConflictDialogProps) {
  const [mine, setMine] = useState<ReadonlySet<string>>(new Set())
  const toggle = (key: string, isMine: boolean) => {
    const next = new Set(mine)
    if (isMine) next.add(key)
    else next.delete(key)
    setMine(next)
  }
  return (
    <Modal title={isKnown ? secretText.conflict : secretText.maybeConflict} isOpen onClose={onCancel}>
      <p>{isKnown ? secretText.conflictAdvice : secretText.maybeConflictAdvice}</p>
      {keys.map(key => (
        <fieldset key={key}>
          <legend>
            <code>{key}</code>
          </legend>
          <label>
            <input type="radio" name={key} checked={!mine.has(key)} onChange={() => toggle(key, false)} />{' '}
            {secretText.keepTheirs}
          </label>{' '}
          <label>
            <input type="radio" name={key} checked={mine.has(key)} onChange={() => toggle(key, true)} />{' '}
            {secretText.useMine}
          </label>
        </fieldset>
      ))}
      <DialogButtons>
        <Button onPress={onCancel}>{text.cancel}</Button>
        <Button look="primary" onPress={() => onChoose(mine)}>
          {text.save}
        </Button>
      </DialogButtons>
    </Modal>
  )
}
