import React, { useState } from "react";

interface Props {
  title: string;
  items: string[];
  onPick?: (item: string) => void;
}

/** A list that can be filtered. */
export function FilterList({ title, items, onPick }: Props) {
  const [query, setQuery] = useState("");
  const shown = items.filter((item) => item.includes(query));
  return (
    <section>
      <h2>{title}</h2>
      <input value={query} onChange={(e) => setQuery(e.target.value)} />
      <ul>
        {shown.map((item) => (
          <li key={item} onClick={() => onPick?.(item)}>{item}</li>
        ))}
      </ul>
    </section>
  );
}

export const Badge: React.FC<{ n: number }> = ({ n }) => {
  if (n === 0) return null;
  return <span className="badge">{n}</span>;
};
