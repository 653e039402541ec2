// The data of a secret: masked values, revealed one by one, edited as a draft, compared before saving.

import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { applyMergePatch } from '../../api/merge-patch.ts'
import type { JsonObject, Resource } from '../../api/object.ts'
import { useSession } from '../app/session.tsx'
import { draftName, useDraft } from '../data/drafts.ts'
import { objectKey, readMasked } from '../data/object.ts'
import { type DataChange, type DataSaved, keyNames, saveData, versionOf } from '../data/secrets.ts'
import { affectedManagers, type Manager, managersOf } from '../editor/owners.ts'
import { fieldManager } from '../editor/save.ts'
import { text } from '../text/common.ts'
import { secretText } from '../text/secrets.tsx'
import { ActionButton, Button } from '../ui/button.tsx'
import { DialogButtons } from '../ui/dialog.tsx'
import { TextField } from '../ui/fields.tsx'
import { Card, Columns, Note, problemOf } from '../ui/parts.tsx'
import { Conditions } from './conditions.tsx'
import { AffectedManagers } from './field-managers.tsx'
import { MetadataCard } from './object-cards.tsx'
import { Changes, ConflictDialog, type Draft } from './secret-changes.tsx'
import style from './secret-data.module.css'
import { KeyRow } from './secret-key-row.tsx'
import { LastRead, WhoCanRead } from './secret-side.tsx'
import type { TabProps } from './tab.ts'

export function SecretData({ kind, at, object }: TabProps) {
  const { user } = useSession()
  const client = useQueryClient()
  const [draft, setDraft, latest] = useDraft<Draft>(draftName(user, 'data', kind.id, at.namespace, at.name))
  const [problem, setProblem] = useState('')
  const [conflict, setConflict] = useState<Extract<DataSaved, { readonly result: 'conflict' }>>()
  const keep = (next: Draft | undefined) => {
    setDraft(next)
    setProblem('')
  }
  const set = (key: string, value: string | null | undefined) => {
    // The edit of a key begins when its value is read. Edits of other keys may come before.
    const { base = object, change: before = {} } = latest.current ?? {}
    const { [key]: _, ...others } = before
    const change = value === undefined ? others : { ...others, [key]: value }
    keep(Object.keys(change).length ? { base, change } : undefined)
  }
  const send = async (base: Resource, change: DataChange) => {
    try {
      const saved = await saveData(kind, at, base, change)
      if (saved.result === 'conflict') return setConflict(saved)
      await client.invalidateQueries({ queryKey: objectKey(kind, at) })
      // What was typed during the save is a new edit.
      const typed = Object.entries(latest.current?.change ?? {}).filter(([key, value]) => change[key] !== value)
      keep(typed.length ? { base: (await readMasked(kind, at)).object, change: Object.fromEntries(typed) } : undefined)
    } catch (error) {
      setProblem(problemOf(error).message)
    }
  }
  const follows = (object.spec?.['sharedSecretRef'] ?? undefined) as { readonly name?: string } | undefined
  const change = draft?.change ?? {}
  const keys = [...new Set([...keyNames(object), ...Object.keys(change)])].toSorted()
  return (
    <Columns
      side={
        <>
          <WhoCanRead kind={kind} at={at} />
          <LastRead kind={kind} at={at} />
          <Conditions object={object} />
          <MetadataCard object={object} />
        </>
      }
    >
      {follows && (
        <Note>
          <span>{secretText.follows(follows.name ?? '')}</span>
        </Note>
      )}
      <Card title={secretText.data(versionOf(object))}>
        <table className={style.table}>
          <thead>
            <tr>
              <th scope="col">{secretText.key}</th>
              <th scope="col">{secretText.value}</th>
              <th scope="col">
                <span className="visually-hidden">{text.actions}</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {keys.map(key => (
              <KeyRow
                key={key}
                kind={kind}
                at={at}
                object={object}
                name={key}
                draft={Object.hasOwn(change, key) ? change[key] : undefined}
                isReadOnly={follows !== undefined}
                onChange={value => set(key, value)}
              />
            ))}
          </tbody>
        </table>
        {keys.length === 0 && <p>{text.none}</p>}
        {!follows && <AddKey existing={keys} onAdd={key => set(key, '')} />}
      </Card>
      {draft && <Changes draft={draft} current={object} />}
      {draft && <AffectedManagers managers={affectedBy(draft.change, object)} />}
      {problem && (
        <Note tone="bad">
          <span role="alert">{problem}</span>
        </Note>
      )}
      {draft && (
        <DialogButtons>
          <Button onPress={() => keep(undefined)}>{text.discard}</Button>
          <ActionButton
            look="primary"
            action={{ verb: 'patch', kind, ...at }}
            onPress={() => send(draft.base, draft.change)}
          >
            {text.save}
          </ActionButton>
        </DialogButtons>
      )}
      {conflict && draft && (
        <ConflictDialog
          keys={conflict.keys}
          isKnown={conflict.isKnown}
          onCancel={() => setConflict(undefined)}
          onChoose={mine => {
            const kept = Object.entries(draft.change).filter(([key]) => !conflict.keys.includes(key) || mine.has(key))
            setConflict(undefined)
            if (kept.length === 0) return keep(undefined)
            const next = { base: conflict.theirs, change: Object.fromEntries(kept) }
            keep(next)
            void send(next.base, next.change)
          }}
        />
      )}
    </Columns>
  )
}

/** Values that were not read differ from those of the change. */
function affectedBy(change: DataChange, object: Resource): readonly Manager[] {
  const from = object as unknown as JsonObject
  const to = applyMergePatch(from, { spec: { data: change } }) as JsonObject
  return affectedManagers(managersOf(object, from), { from, to, self: fieldManager })
}

function AddKey({ existing, onAdd }: { existing: readonly string[]; onAdd: (key: string) => void }) {
  const [name, setName] = useState('')
  const isValid = /^[-._a-zA-Z0-9]{1,253}$/.test(name)
  const problem = name === '' || isValid ? '' : secretText.keyRule
  return (
    <form
      className={style.add}
      onSubmit={event => {
        event.preventDefault()
        if (!isValid || existing.includes(name)) return
        onAdd(name)
        setName('')
      }}
    >
      <TextField
        label={secretText.newKey}
        value={name}
        onChange={setName}
        isMono
        problem={existing.includes(name) ? secretText.keyExists : problem}
      />
      <Button type="submit" isDisabled={!isValid || existing.includes(name)}>
        {text.add}
      </Button>
    </form>
  )
}
