// Counters, gauges and histograms in the Prometheus text format. Without a library, because the hot path is only three additions.

export type Labels = { readonly [name: string]: string }

export interface Metrics {
  /** One series of a metric. Keep it on hot paths, because its labels are encoded once. */
  counter(name: string, help: string): (labels: Labels) => (by: number) => void
  histogram(name: string, help: string, buckets: readonly number[]): (labels: Labels) => (value: number) => void
  /** Evaluated when the metrics are scraped. */
  gauge(name: string, help: string, read: Read): void
  /** Like `gauge`, for a value that is counted elsewhere and only grows. */
  readCounter(name: string, help: string, read: Read): void
  render(): string
}

type Read = () => Iterable<readonly [Labels, number]>

type Family = {
  readonly name: string
  readonly help: string
  readonly type: string
  readonly lines: () => Iterable<string>
}

export function openMetrics(): Metrics {
  const families: Family[] = []
  const counters = new Map<string, Map<string, { value: number }>>()
  const readOnScrape = (type: string) => (name: string, help: string, read: Read) => {
    const lines = () => [...read()].map(([labels, value]) => `${name}${write(labels)} ${value}`)
    families.push({ name, help, type, lines })
  }
  return {
    counter(name, help) {
      const series = counters.get(name) ?? new Map<string, { value: number }>()
      if (!counters.has(name))
        families.push({
          name,
          help,
          type: 'counter',
          lines: () => series.entries().map(([key, { value }]) => `${name}${key} ${value}`),
        })
      counters.set(name, series)
      return labels => {
        const one = series.get(write(labels)) ?? { value: 0 }
        series.set(write(labels), one)
        return by => {
          one.value += by
        }
      }
    },
    histogram(name, help, buckets) {
      const series = new Map<string, Series>()
      families.push({
        name,
        help,
        type: 'histogram',
        lines: () => series.values().flatMap(one => histogramLines(name, buckets, one)),
      })
      return labels => {
        const one = series.get(write(labels)) ?? { labels, counts: new Array(buckets.length).fill(0), sum: 0, count: 0 }
        series.set(write(labels), one)
        return value => {
          const index = buckets.findIndex(limit => value <= limit)
          if (index !== -1) one.counts[index] = (one.counts[index] ?? 0) + 1
          one.sum += value
          one.count++
        }
      }
    },
    gauge: readOnScrape('gauge'),
    readCounter: readOnScrape('counter'),
    render: () =>
      families
        .map(
          ({ name, help, type, lines }) =>
            `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${[...lines()].join('\n')}\n`,
        )
        .join(''),
  }
}

type Series = { readonly labels: Labels; readonly counts: number[]; sum: number; count: number }

function histogramLines(name: string, buckets: readonly number[], { labels, counts, sum, count }: Series): string[] {
  let total = 0
  const lines = buckets.map((limit, index) => {
    total += counts[index] ?? 0
    return `${name}_bucket${write({ ...labels, le: String(limit) })} ${total}`
  })
  return [
    ...lines,
    `${name}_bucket${write({ ...labels, le: '+Inf' })} ${count}`,
    `${name}_sum${write(labels)} ${sum}`,
    `${name}_count${write(labels)} ${count}`,
  ]
}

function write(labels: Labels): string {
  let text = ''
  for (const name in labels) text += `${text ? ',' : '{'}${name}="${escaped(labels[name] as string)}"`
  return text && `${text}}`
}

const escaped = (value: string) =>
  /[\\"\n]/.test(value) ? value.replace(/\\/g, '\\\\').replace(/"/g, '\\"').replace(/\n/g, '\\n') : value
