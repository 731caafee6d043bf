/** Texts for swap-out candidates. An unknown code is shown as it is. */
const LEVELS: Readonly<Record<string, string>> = {
  non_p0_not_yet_swapped: 'not P0, not yet swapped out in this round',
  non_p0_swapped: 'not P0, swapped out in this round',
  non_p0_warm_not_yet_swapped: 'not P0, kept warm, not yet swapped out in this round',
  non_p0_warm_swapped: 'not P0, kept warm, swapped out in this round',
  p0_not_yet_swapped: 'P0, not yet swapped out in this round',
  p0_swapped: 'P0, swapped out in this round',
  p0_warm_not_yet_swapped: 'P0, kept warm, not yet swapped out in this round',
  p0_warm_swapped: 'P0, kept warm, swapped out in this round',
}
const CHOICES: Readonly<Record<string, string>> = {
  whole_level: 'victim: all tasks at its level were needed',
  oldest_then_fewest_bytes: 'victim: least recently swapped, then smallest',
}

export function levelWords(level: string, isAboveRequest = false): string {
  const words = LEVELS[level] ?? level.replaceAll('_', ' ')
  return isAboveRequest ? `${words}, used more VRAM than requested` : words
}

export function choiceWords(choice: string | null): string {
  return choice === null ? 'stays' : (CHOICES[choice] ?? choice.replaceAll('_', ' '))
}
