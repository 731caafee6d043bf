/** How candidates of a swap-out are told, for people. A word that is new is shown as it is. */
const LEVELS: Readonly<Record<string, string>> = {
  non_p0_not_yet_swapped: 'not P0, not yet swapped in this round',
  non_p0_swapped: 'not P0, swapped in this round',
  p0_not_yet_swapped: 'P0, not yet swapped in this round',
  p0_swapped: 'P0, swapped in this round',
}
const CHOICES: Readonly<Record<string, string>> = {
  whole_level: 'leaves: all of its level were needed',
  oldest_then_fewest_bytes: 'leaves: longest not swapped, fewest bytes',
}

export function levelWords(level: string): string {
  return LEVELS[level] ?? level.replaceAll('_', ' ')
}

export function choiceWords(choice: string | null): string {
  return choice === null ? 'stays' : (CHOICES[choice] ?? choice.replaceAll('_', ' '))
}
