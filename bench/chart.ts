// One small SVG chart per figure: the result as a bar, the baseline below it, the target as a line; or a curve. record-files.ts writes it.

import { type Figure, isMet, number, type Point, told, toldWanted } from './measurement.ts'

/** Readable on light and dark pages, because an image does not know its background. */
export const colours = { text: '#77818c', met: '#3a85d8', short: '#cf6a1d', bare: '#77818c', wanted: '#77818c' }

const width = 400
const left = 10
/** The numbers are in a column after the longest bar. */
const longest = 190
const bar = 14

export function chartOf(figure: Figure): string {
  return figure.curve ? curveOf(figure, figure.curve) : barsOf(figure)
}

const plot = { left: 46, right: 380, top: 28, bottom: 128 }

/** Both axes are logarithmic, so that cost in proportion to the size is a straight line. */
function curveOf(figure: Figure, { axis, unit, points }: NonNullable<Figure['curve']>): string {
  const colour = isMet(figure) === false ? colours.short : colours.met
  const scale = (values: readonly number[], from: number, to: number) => {
    const [least, most] = [Math.log(Math.min(...values)), Math.log(Math.max(...values))]
    return (value: number) => Math.round(from + ((Math.log(value) - least) / (most - least || 1)) * (to - from))
  }
  const x = scale(
    points.map(({ at }) => at),
    plot.left,
    plot.right - 40,
  )
  const values = points.map(({ value }) => value)
  // At least a factor of ten, so that a flat curve looks flat.
  const y = scale([...values, Math.min(...values) * 10], plot.bottom, plot.top + 12)
  const place = ({ at, value }: Point) => `${x(at)} ${y(value)}`
  const marks = points.flatMap(point => [
    `<circle cx="${x(point.at)}" cy="${y(point.value)}" r="3" fill="${colour}"/>`,
    text(x(point.at) - 10, y(point.value) - 7, `${number(point.value)} ${unit}`),
    text(x(point.at) - 10, plot.bottom + 16, number(point.at)),
  ])
  return svg(160, `${figure.name}: ${told(figure.value, figure)}`, [
    text(left, 14, figure.name, ' font-weight="bold"'),
    `<path d="M${points.map(place).join('L')}" fill="none" stroke="${colour}" stroke-width="2"/>`,
    ...marks,
    text(left, 156, `${axis}; wanted ${toldWanted(figure)}`),
  ])
}

function barsOf(figure: Figure): string {
  const { name, value, bare, wanted } = figure
  const most = Math.max(value, wanted ?? 0, bare?.value ?? 0) || 1
  const length = (size: number) => Math.round((Math.max(0, size) / most) * longest)
  const rows = [
    { size: value, label: told(value, figure), colour: isMet(figure) === false ? colours.short : colours.met },
    ...(bare ? [{ size: bare.value, label: toldBare(bare, figure), colour: colours.bare }] : []),
  ]
  const top = 24
  const bottom = top + rows.length * (bar + 6)
  const height = bottom + (wanted === undefined ? 4 : 18)
  const lines = rows.flatMap(({ size, label, colour }, row) => {
    const y = top + row * (bar + 6)
    return [
      `<rect x="${left}" y="${y}" width="${Math.max(1, length(size))}" height="${bar}" fill="${colour}"/>`,
      text(left + longest + 8, y + 11, label),
    ]
  })
  const at = left + length(wanted ?? 0)
  const limit = `<path d="M${at} ${top - 4}V${bottom}" stroke="${colours.wanted}" stroke-width="2" stroke-dasharray="3 2"/>`
  const verdict = { true: 'met', false: 'falls short', undefined: '' }[`${isMet(figure)}`]
  const foot = `wanted ${toldWanted(figure)}: ${verdict}`
  return svg(height, `${name}: ${told(value, figure)}${wanted === undefined ? '' : `, ${foot}`}`, [
    text(left, 14, name, ' font-weight="bold"'),
    ...lines,
    ...(wanted === undefined ? [] : [limit, text(left, bottom + 12, foot)]),
  ])
}

const svg = (height: number, title: string, lines: readonly string[]) =>
  [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<g font-family="sans-serif" font-size="11" fill="${colours.text}">`,
    ...lines,
    '</g>',
    '</svg>',
    '',
  ].join('\n')

/** The baseline of a ratio is 1, so its name is enough. */
const toldBare = ({ name, value }: NonNullable<Figure['bare']>, figure: Figure) =>
  value === 1 ? name : `${name} ${told(value, figure)}`

const text = (x: number, y: number, words: string, more = '') =>
  `<text x="${x}" y="${y}"${more}>${escaped(words)}</text>`

const escaped = (words: string) =>
  words.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
