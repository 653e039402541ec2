// The versions of a secret: who changed which keys, the difference between two, and the way back.

import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { diffCommand, rollbackCommand } from '../data/commands.ts'
import { objectKey } from '../data/object.ts'
import { oneOf } from '../data/places.ts'
import { readHistory, readValue, rollBack, type SecretValue, type Version, versionOf } from '../data/secrets.ts'
import { text } from '../text.ts'
import { ActionButton, Button } from '../ui/button.tsx'
import { DialogButtons, Modal } from '../ui/dialog.tsx'
import { ago, dateTime } from '../ui/format.ts'
import { Card, Command, ErrorState, Loading, Note, Pill, problemOf, Stack } from '../ui/parts.tsx'
import style from './secret-data.module.css'
import type { TabProps } from './tab.ts'

export function SecretHistory({ kind, at, object }: TabProps) {
  const navigate = useNavigate()
  const { diff = '' } = useSearch({ strict: false }) as { readonly diff?: string }
  const [target, setTarget] = useState<Version>()
  const { data, error, isPending } = useQuery({
    queryKey: ['history', kind.id, at, versionOf(object)],
    queryFn: () => readHistory(kind, at),
  })
  if (isPending) return <Loading />
  if (error) return <ErrorState error={error} />
  const compare = ({ number }: Version) => void navigate({ to: '.', search: { diff: `${number - 1}..${number}` } })
  return (
    <Stack>
      <Card title="Versions">
        <table className={style.table}>
          <thead>
            <tr>
              <th scope="col">Version</th>
              <th scope="col">Keys</th>
              <th scope="col">Who</th>
              <th scope="col">When</th>
              <th scope="col">
                <span className="visually-hidden">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {data.map(version => (
              <tr key={version.number}>
                <td>
                  {version.number} {version.current && <Pill tone="ok">current</Pill>}
                  {version.restored !== undefined && <Pill>restores {version.restored}</Pill>}
                </td>
                <td className={style.value}>{(version.changed ?? []).join(', ')}</td>
                <td>
                  {version.author} {version.key && version.key !== version.author && <>with key {version.key}</>}
                </td>
                <td>
                  <time title={dateTime(version.time)}>{ago(version.time)}</time>
                </td>
                <td className={style.buttons}>
                  {data.some(({ number }) => number === version.number - 1) && (
                    <Button
                      look="quiet"
                      aria-label={`Compare version ${version.number} with the one before`}
                      onPress={() => compare(version)}
                    >
                      Compare
                    </Button>
                  )}
                  {!version.current && (
                    <ActionButton
                      look="quiet"
                      action={{ verb: 'patch', kind, ...at }}
                      aria-label={`Roll back to version ${version.number}`}
                      onPress={() => setTarget(version)}
                    >
                      Roll back
                    </ActionButton>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Card>
      {diff && <Difference kind={kind} at={at} object={object} diff={diff} versions={data} />}
      {target && (
        <RollBackDialog kind={kind} at={at} object={object} version={target} onClose={() => setTarget(undefined)} />
      )}
    </Stack>
  )
}

/** Compares by the changed keys of the versions between. A value is read only when somebody asks. */
function Difference({ kind, at, diff, versions }: TabProps & { diff: string; versions: readonly Version[] }) {
  const [, one, other] = /^(\d+)\.\.(\d+)$/.exec(diff) ?? []
  if (one === undefined || other === undefined) return null
  const [from, to] = [Number(one), Number(other)].toSorted((a, b) => a - b) as [number, number]
  const between = versions.filter(({ number }) => number > from && number <= to)
  const keys = [...new Set(between.flatMap(({ changed = [] }) => changed))].toSorted()
  return (
    <Card title={`Version ${from} against version ${to}`}>
      <p>{keys.length === 1 ? '1 key differs' : `${keys.length} keys differ`}, values hidden</p>
      <div className={style.diff}>
        {keys.map(key => (
          <KeyDifference key={key} kind={kind} at={at} name={key} from={from} to={to} />
        ))}
      </div>
      <Command>{diffCommand(kind, at, from, to)}</Command>
    </Card>
  )
}

type KeyDifferenceProps = Pick<TabProps, 'kind' | 'at'> & { name: string; from: number; to: number }

function KeyDifference({ kind, at, name, from, to }: KeyDifferenceProps) {
  const [shown, setShown] = useState<readonly (SecretValue | undefined)[]>()
  const reveal = async () =>
    setShown(await Promise.all([from, to].map(version => readValue(kind, at, name, version).catch(() => undefined))))
  const value = (index: number) => (shown ? (shown[index]?.shown ?? '(no such key)') : '••••••••')
  return (
    <>
      <div className={style.removed}>
        <span>−</span>
        <span>{name}</span>
        <span className={style.value}>{value(0)}</span>
      </div>
      <div className={style.added}>
        <span>+</span>
        <span>{name}</span>
        <span className={style.value}>{value(1)}</span>
        <Button
          look="quiet"
          aria-label={`${shown ? 'Hide' : 'Reveal'} both values of ${name}`}
          onPress={() => (shown ? setShown(undefined) : void reveal())}
        >
          {shown ? 'Hide' : 'Reveal'}
        </Button>
      </div>
    </>
  )
}

function RollBackDialog({ kind, at, object, version, onClose }: TabProps & { version: Version; onClose: () => void }) {
  const client = useQueryClient()
  const [problem, setProblem] = useState('')
  const restore = async () => {
    try {
      await rollBack(kind, at, object, version.number)
      await client.invalidateQueries({ queryKey: objectKey(kind, at) })
      onClose()
    } catch (error) {
      setProblem(problemOf(error).message)
    }
  }
  return (
    <Modal title={`Roll ${oneOf(kind)} ${at.name} back to version ${version.number}?`} isOpen onClose={onClose}>
      <p>The data of version {version.number} becomes a new version. No version is lost.</p>
      {problem && (
        <Note tone="bad">
          <span role="alert">{problem}</span>
        </Note>
      )}
      <Command>{rollbackCommand(kind, at, version.number)}</Command>
      <DialogButtons>
        <Button onPress={onClose}>{text.cancel}</Button>
        <Button look="primary" onPress={() => void restore()}>
          Roll back
        </Button>
      </DialogButtons>
    </Modal>
  )
}
