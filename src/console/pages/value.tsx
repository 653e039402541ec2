// Shows any value of an object, by its schema.

import { isObject, type Json } from '../../api/object.ts'
import type { Schema } from '../../api/schema.ts'
import { text } from '../text/common.ts'
import { Ago } from '../ui/parts.tsx'
import style from './value.module.css'

export function Value({ value, schema }: { value: Json | undefined; schema: Schema | undefined }) {
  if (value === undefined || value === null || value === '') return <>{text.none}</>
  if (Array.isArray(value))
    return value.length === 0 ? (
      text.none
    ) : (
      <ul className={style.list}>
        {value.map((item, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: items of a list have no identity
          <li key={index} className={isObject(item) ? style.item : undefined}>
            <Value value={item} schema={schema?.items} />
          </li>
        ))}
      </ul>
    )
  if (isObject(value)) {
    const inner = typeof schema?.additionalProperties === 'object' ? schema.additionalProperties : undefined
    return (
      <dl className={style.map}>
        {Object.entries(value).map(([key, one]) => (
          <Entry key={key} name={key} value={one} schema={schema?.properties?.[key] ?? inner} />
        ))}
      </dl>
    )
  }
  if (schema?.format === 'date-time') return <Ago at={String(value)} />
  if (typeof value === 'boolean') return <>{value ? text.yes : text.no}</>
  return <>{String(value)}</>
}

const Entry = ({ name, value, schema }: { name: string; value: Json; schema: Schema | undefined }) => (
  <>
    <dt title={schema?.description}>{name}</dt>
    <dd>
      <Value value={value} schema={schema} />
    </dd>
  </>
)
