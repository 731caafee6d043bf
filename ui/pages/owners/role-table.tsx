/** Permissions of each role. The controller enforces them; docs/security.md explains them. */
import { Show, type JSX } from 'solid-js'
import { Table, type Column } from '../../design/table.tsx'
import { useCluster } from '../../state/cluster.tsx'
import type { Role } from '../../state/rights.ts'

interface RoleRow {
  readonly role: Role
  readonly sees: string
  readonly may: string
}

const ROLES: readonly RoleRow[] = [
  {
    role: 'viewer',
    sees: 'All tasks, nodes, groups, owners, events and settings, but not the output and files of tasks',
    may: 'Only read',
  },
  {
    role: 'submitter',
    sees: 'The same, plus the output, files and variables of their own tasks',
    may: 'Submit tasks; change, hold, swap and cancel their own tasks; run simulations',
  },
  {
    role: 'operator',
    sees: 'The same, plus the output of all tasks; files and variables of their own tasks only',
    may: 'Change all tasks, nodes, groups and settings',
  },
  {
    role: 'admin',
    sees: 'Everything, including files and variables of all tasks',
    may: 'Everything, including tokens; exec only in their own tasks',
  },
]

export function RoleTable(): JSX.Element {
  const { session } = useCluster()
  const own = () => session.body()?.caller ?? null
  const columns: readonly Column<RoleRow>[] = [
    {
      name: 'Role',
      isRowHeading: true,
      cell: (row) => (
        <>
          {row().role}
          <Show when={own()?.name !== null && own()?.role === row().role}> (yours)</Show>
        </>
      ),
    },
    { name: 'Sees', class: 'text', cell: (row) => row().sees },
    { name: 'May', class: 'text', cell: (row) => row().may },
  ]
  return (
    <details class="card">
      <summary>What each role sees</summary>
      <Show when={own()?.name === null}>
        <p class="quiet">
          This controller requires no authentication: every caller is an admin, and tasks have no owner.
        </p>
      </Show>
      <Table name="Roles" columns={columns} rows={ROLES} idOf={({ role }) => role} />
    </details>
  )
}
