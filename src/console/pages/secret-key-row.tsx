// A key of a secret: masked, revealed, or being edited.

import { useState } from 'react'
import { readValue, type SecretValue } from '../data/secrets.ts'
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

const notText = 'This value is not text. Remove the key and add it again, or change it with kubectl.'

export function KeyRow({ kind, at, name, draft, isReadOnly, onChange }: KeyRowProps) {
  const [shown, setShown] = useState<SecretValue>()
  const [problem, setProblem] = useState('')
  const reveal = async () => {
    try {
      setShown(await readValue(kind, at, name))
    } catch (error) {
      setProblem(problemOf(error).message)
    }
  }
  const edit = async () => {
    try {
      const value = shown ?? (await readValue(kind, at, name))
      if (value?.isText === false) return setProblem(notText)
      onChange(value?.shown ?? '')
      setShown(undefined)
    } catch (error) {
      setProblem(problemOf(error).message)
    }
  }
  const read = { verb: 'get', kind, ...at }
  return (
    <tr>
      <td className={style.key}>{name}</td>
      <td className={style.value}>
        {typeof draft === 'string' ? (
          <textarea
            aria-label={`New value of ${name}`}
            value={draft}
            rows={1}
            autoComplete="off"
            spellCheck={false}
            onChange={event => onChange(event.currentTarget.value)}
          />
        ) : draft === null ? (
          <s>removed</s>
        ) : shown === undefined ? (
          <span role="img" aria-label="hidden">
            ••••••••
          </span>
        ) : (
          `${shown.isText ? '' : '(base64) '}${shown.shown}`
        )}
        {problem && <span role="alert"> {problem}</span>}
      </td>
      <td className={style.buttons}>
        {draft !== undefined ? (
          <Button look="quiet" aria-label={`Undo the change of ${name}`} onPress={() => onChange(undefined)}>
            Undo
          </Button>
        ) : (
          <>
            {shown === undefined ? (
              <ActionButton look="quiet" action={read} aria-label={`Reveal ${name}`} onPress={() => void reveal()}>
                Reveal
              </ActionButton>
            ) : (
              <>
                <CopyButton value={shown.shown} />
                <Button look="quiet" aria-label={`Hide ${name}`} onPress={() => setShown(undefined)}>
                  Hide
                </Button>
              </>
            )}
            {!isReadOnly && (
              <>
                <ActionButton
                  look="quiet"
                  action={{ verb: 'patch', kind, ...at }}
                  aria-label={`Edit ${name}`}
                  onPress={() => void edit()}
                >
                  Edit
                </ActionButton>
                <ActionButton
                  look="quiet"
                  action={{ verb: 'patch', kind, ...at }}
                  aria-label={`Remove ${name}`}
                  onPress={() => onChange(null)}
                >
                  Remove
                </ActionButton>
              </>
            )}
          </>
        )}
      </td>
    </tr>
  )
}
