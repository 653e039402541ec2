// Shares a secret with a team: adds an entry to spec.access.

import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { JsonObject } from '../../api/object.ts'
import { Team } from '../../kinds/team.ts'
import { objectKey, readMasked } from '../data/object.ts'
import { useRows } from '../data/rows.ts'
import { server } from '../data/server.ts'
import { text } from '../text.ts'
import { ActionButton, Button } from '../ui/button.tsx'
import { DialogButtons, Modal } from '../ui/dialog.tsx'
import { SelectField } from '../ui/fields.tsx'
import { Note, problemOf } from '../ui/parts.tsx'
import type { TabProps } from './tab.ts'

const rights = { get: ['get'], 'get and update': ['get', 'update', 'patch'] } as const

export function ShareButton({ kind, at }: TabProps) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <ActionButton action={{ verb: 'patch', kind, ...at }} onPress={() => setOpen(true)}>
        Share
      </ActionButton>
      {isOpen && <ShareDialog kind={kind} at={at} onClose={() => setOpen(false)} />}
    </>
  )
}

function ShareDialog({ kind, at, onClose }: Pick<TabProps, 'kind' | 'at'> & { onClose: () => void }) {
  const client = useQueryClient()
  const { rows } = useRows(Team)
  const [team, setTeam] = useState('')
  const [right, setRight] = useState<keyof typeof rights>('get')
  const [problem, setProblem] = useState('')
  const share = async () => {
    try {
      const { object } = await readMasked(kind, at)
      const access = (object.spec?.['access'] ?? []) as readonly JsonObject[]
      const entry = { verbs: [...rights[right]], teams: [team] }
      const body = {
        metadata: { resourceVersion: object.metadata.resourceVersion ?? '' },
        spec: { access: [...access, entry] },
      }
      await server.patch(kind, at, { type: 'merge', body }, { fieldManager: 'console' })
      await client.invalidateQueries({ queryKey: objectKey(kind, at) })
      await client.invalidateQueries({ queryKey: ['who-can'] })
      onClose()
    } catch (error) {
      setProblem(problemOf(error).message)
    }
  }
  return (
    <Modal title={`Share ${at.name} with a team`} isOpen onClose={onClose}>
      <SelectField label="Team" value={team} onChange={setTeam} options={rows.map(({ name }) => name)} />
      <SelectField
        label="They may"
        value={right}
        onChange={value => setRight(value as keyof typeof rights)}
        options={Object.keys(rights)}
      />
      {problem && (
        <Note tone="bad">
          <span role="alert">{problem}</span>
        </Note>
      )}
      <DialogButtons>
        <Button onPress={onClose}>{text.cancel}</Button>
        <Button look="primary" isDisabled={team === ''} onPress={() => void share()}>
          Share
        </Button>
      </DialogButtons>
    </Modal>
  )
}
