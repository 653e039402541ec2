// The difference between two objects, field by field.

import { isObject, type Json, type JsonObject } from '../../api/object.ts'
import { changedPaths } from '../editor/difference.ts'
import style from './secret-data.module.css'

const at = (value: Json, path: string): Json | undefined =>
  path.split('.').reduce<Json | undefined>((inner, key) => (isObject(inner) ? inner[key] : undefined), value)

const shown = (value: Json) => (typeof value === 'string' ? value : JSON.stringify(value))

export function ChangeList({ from, to }: { from: JsonObject; to: JsonObject }) {
  return (
    <div className={style.diff}>
      {changedPaths(from, to).map(path => {
        const [before, after] = [at(from, path), at(to, path)]
        return (
          <div key={path} className={style.pair}>
            {before !== undefined && (
              <div className={style.removed}>
                <span>−</span>
                <span className={style.value}>
                  {path}: {shown(before)}
                </span>
              </div>
            )}
            {after !== undefined && (
              <div className={style.added}>
                <span>+</span>
                <span className={style.value}>
                  {path}: {shown(after)}
                </span>
              </div>
            )}
          </div>
        )
      })}
    </div>
  )
}
