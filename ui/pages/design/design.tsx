/**
 * All building blocks of the pages, in development only: `HEADROOM_URL=… vite -c ui/vite.config.ts`, then
 * /design.
 */
import { createSignal, For, type JSX } from 'solid-js'
import { ActionButton } from '../../design/action-button.tsx'
import { Chip, type Tone } from '../../design/chip.tsx'
import { ConfirmedAction } from '../../design/confirm-dialog.tsx'
import { CopyButton } from '../../design/copy-button.tsx'
import { Drawer } from '../../design/drawer.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { Problem } from '../../design/problem.tsx'
import { createSelection } from '../../design/selection.tsx'
import { TabLinks } from '../../design/tab-links.tsx'
import { Table, type Column } from '../../design/table.tsx'
import { toast } from '../../design/toast.tsx'
import { Tooltip } from '../../design/tooltip.tsx'
import { usePageTitle } from '../../state/page-title.ts'

const TONES: readonly Tone[] = ['running', 'pending', 'failed', 'cancelled', 'out', 'accent']
const COLOURS = ['accent', 'good', 'warn', 'bad', 'quiet', 'resident', 'committed', 'swapped', 'utilization']

interface Row {
  readonly id: string
  readonly size: number
}

const ROWS: readonly Row[] = ['alpha', 'beta', 'gamma'].map((id, at) => ({ id, size: 2 ** at }))
const COLUMNS: readonly Column<Row>[] = [
  { name: 'Name', sort: 'name', cell: (row) => row().id },
  { name: 'Size', isNumber: true, help: 'A number', cell: (row) => row().size },
]

export default function Design(): JSX.Element {
  usePageTitle(() => 'Design')
  const [isOpen, setOpen] = createSignal(false)
  const idOf = ({ id }: Row): string => id
  const selection = createSelection<Row>({ idOf, nameOf: idOf, shown: () => ROWS })
  return (
    <div class="stack">
      <h1>Design</h1>
      <Part title="Type and colours">
        <p>
          Text, <span class="quiet">quiet text</span>, <code>code</code>, <a href="#main">a link</a>,{' '}
          <kbd>g</kbd>
        </p>
        <ul class="row">
          <For each={COLOURS}>{(name) => <Swatch name={name} />}</For>
        </ul>
      </Part>
      <Part title="Buttons">
        <div class="row">
          <button class="primary">Primary</button>
          <button>Plain</button>
          <button class="danger">Danger</button>
          <ActionButton whyNot="A reason." onClick={() => {}}>
            Not possible
          </ActionButton>
          <CopyButton what="text" text={() => 'text'} />
        </div>
      </Part>
      <Part title="Chips, tabs and tooltip">
        <div class="row">
          <For each={TONES}>{(tone) => <Chip tone={tone}>{tone}</Chip>}</For>
          <Tooltip name="What is this?">An explanation.</Tooltip>
        </div>
        <TabLinks
          name="Example tabs"
          tabs={[
            { name: 'Running', href: '/design', isCurrent: true, count: 12 },
            { name: 'Pending', href: '/design?tab=pending', isCurrent: false, count: null },
          ]}
        />
      </Part>
      <Part title="Dialog, drawer and message">
        <div class="row">
          <ConfirmedAction
            label="Dialog"
            title="Do it?"
            confirm="Do it"
            isDanger
            whyNot={null}
            run={() => Promise.resolve()}
          >
            <p>The effects of the change.</p>
          </ConfirmedAction>
          <button onClick={() => setOpen(true)}>Drawer</button>
          <button onClick={() => toast({ text: 'Changed.', undo: () => Promise.resolve('Undone.') })}>
            Message with Undo
          </button>
        </div>
        <Drawer isOpen={isOpen()} onClose={() => setOpen(false)} title="Drawer">
          <p>A form.</p>
        </Drawer>
      </Part>
      <Part title="Table">
        <Table
          name="Example"
          columns={[selection.column, ...COLUMNS]}
          rows={ROWS}
          idOf={({ id }) => id}
          sort={{ by: 'name', direction: 'ascending', onSort: () => {} }}
        />
        <p role="status">{selection.rows().length} selected</p>
      </Part>
      <Part title="Empty state and problem">
        <EmptyState icon="inbox" title="This list is empty.">
          The next step.
        </EmptyState>
        <Problem text="What is wrong. What to do." />
      </Part>
    </div>
  )
}

function Part(props: { readonly title: string; readonly children: JSX.Element }): JSX.Element {
  return (
    <section class="card stack" aria-label={props.title}>
      <h2>{props.title}</h2>
      {props.children}
    </section>
  )
}

function Swatch(props: { readonly name: string }): JSX.Element {
  return (
    <li>
      <svg width="20" height="20" aria-hidden="true">
        <rect width="20" height="20" rx="4" fill={`var(--${props.name})`} />
      </svg>{' '}
      {props.name}
    </li>
  )
}
