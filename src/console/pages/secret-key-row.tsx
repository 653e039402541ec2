// A key of a secret: masked, revealed, or being edited.

import { useState } from 'react'
import { isEditable, readValue, type SecretValue } from '../data/secrets.ts'
import { text } from '../text/common.ts'
import { secretText } from '../text/secrets.tsx'
import { ActionButton, Button } from '../ui/button.tsx'
import { CopyButton, problemOf } from '../ui/parts.tsx'
import style from './secret-data.module.css'
import type { TabProps } from './tab.ts'

type KeyRowProps = TabProps & {
  readonly name: string
  /** A new value, null for removed, undefined for unchanged. */
  readonly draft: string | null | undefined
  readonly isReadOnly: boolean
  readonly onChange: (value: string | null | undefined) => void
}

export function KeyRow({ kind, at, object, name, draft, isReadOnly, onChange }: KeyRowProps) {
  const version = object.metadata.resourceVersion
  const [revealed, setRevealed] = useState<{ readonly value: SecretValue | undefined; readonly version?: string }>()
  // A value of an earlier version is hidden. The row itself stays, because somebody may be typing in it.
  const shown = revealed?.version === version ? revealed?.value : undefined
  const setShown = (value: SecretValue | undefined) => setRevealed({ value, ...(version ? { version } : {}) })
  const [problem, setProblem] = useState('')
  /** Takes the focus when it appears, because the button that was pressed disappears. */
  const [next, setNext] = useState<'reveal' | 'hide' | 'value' | 'undo' | 'edit'>()
  const reveal = async () => {
    try {
      setShown(await readValue(kind, at, name))
      setNext('hide')
    } catch (error) {
      setProblem(problemOf(error).message)
    }
  }
  const edit = async () => {
    try {
      const value = shown ?? (await readValue(kind, at, name))
      if (value && !isEditable(value)) return setProblem(value.isText ? secretText.hasReturns : secretText.notText)
      setProblem('')
      onChange(value?.shown ?? '')
      setNext('value')
      setShown(undefined)
    } catch (error) {
      setProblem(problemOf(error).message)
    }
  }
  const hide = () => {
    setShown(undefined)
    setNext('reveal')
  }
  const remove = () => {
    onChange(null)
    setNext('undo')
  }
  const undo = () => {
    onChange(undefined)
    setNext('edit')
  }
  const read = { verb: 'get', kind, ...at }
  return (
    <tr>
      <td className={style.key}>{name}</td>
      <td className={style.value}>
        {typeof draft === 'string' ? (
          <textarea
            aria-label={secretText.newValue(name)}
            // biome-ignore lint/a11y/noAutofocus: the button that opened it is gone
            autoFocus={next === 'value'}
            value={draft}
            rows={1}
            autoComplete="off"
            spellCheck={false}
            onChange={event => onChange(event.currentTarget.value)}
          />
        ) : draft === null ? (
          <s>{secretText.removed}</s>
        ) : shown === undefined ? (
          <span role="img" aria-label={secretText.hidden}>
            ••••••••
          </span>
        ) : shown.isText ? (
          shown.shown
        ) : (
          secretText.base64(shown.shown)
        )}
        {problem && <span role="alert"> {problem}</span>}
      </td>
      <td className={style.buttons}>
        {draft !== undefined ? (
          <Button look="quiet" aria-label={secretText.undoNamed(name)} autoFocus={next === 'undo'} onPress={undo}>
            {secretText.undo}
          </Button>
        ) : (
          <>
            {shown === undefined ? (
              <ActionButton
                look="quiet"
                action={read}
                aria-label={secretText.revealNamed(name)}
                autoFocus={next === 'reveal'}
                onPress={() => reveal()}
              >
                {secretText.reveal}
              </ActionButton>
            ) : (
              <>
                <CopyButton value={shown.shown} />
                <Button look="quiet" aria-label={secretText.hideNamed(name)} autoFocus={next === 'hide'} onPress={hide}>
                  {secretText.hide}
                </Button>
              </>
            )}
            {!isReadOnly && (
              <>
                <ActionButton
                  look="quiet"
                  action={{ verb: 'patch', kind, ...at }}
                  aria-label={secretText.editNamed(name)}
                  autoFocus={next === 'edit'}
                  onPress={() => edit()}
                >
                  {secretText.edit}
                </ActionButton>
                <ActionButton
                  look="quiet"
                  action={{ verb: 'patch', kind, ...at }}
                  aria-label={text.removeNamed(name)}
                  onPress={remove}
                >
                  {text.remove}
                </ActionButton>
              </>
            )}
          </>
        )}
      </td>
    </tr>
  )
}
