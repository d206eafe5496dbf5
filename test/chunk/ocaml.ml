(* A map from names to values that is a list. *)
open Printf

type 'a entry = {
  key : string;
  value : 'a;
}

exception Missing of string

(** Looks a name up. *)
let rec find key entries =
  match entries with
  | [] -> raise (Missing key)
  | entry :: rest -> if entry.key = key then entry.value else find key rest

module Counter = struct
  type t = { mutable n : int }

  let create () = { n = 0 }

  let next counter =
    counter.n <- counter.n + 1;
    printf "%d\n" counter.n;
    counter.n
end

module type STORE = sig
  type t
  val open_ : string -> t
  val close : t -> unit
end

class stack = object
  val mutable items = []

  method push x =
    items <- x :: items;
    List.length items
end

let () =
  let counter = Counter.create () in
  ignore (Counter.next counter);
  print_endline "done"
