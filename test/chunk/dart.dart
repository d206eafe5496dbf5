import 'dart:async';

/// How often to try.
const int maxTries = 3;

abstract class Repository<T> {
  Future<T?> find(String id);
  Future<void> save(T item);
}

/// A user of the app.
class User {
  final String id;
  String name;

  User(this.id, {required this.name}) {
    if (id.isEmpty) throw ArgumentError('id');
    created = DateTime.now();
  }

  factory User.fromJson(Map<String, dynamic> json) {
    final id = json['id'] as String;
    return User(id, name: json['name'] as String);
  }

  /// The name for lists.
  String display() {
    final short = name.length > 20 ? name.substring(0, 20) : name;
    return '$short ($id)';
  }

  bool get isAnonymous => name.isEmpty;
}

enum Role { admin, editor, reader }

mixin Logging {
  void log(String line) {
    print('${DateTime.now()}: $line');
    lines.add(line);
  }
}

Future<T> retry<T>(Future<T> Function() work) async {
  for (var i = 0; i < maxTries; i++) {
    try {
      return await work();
    } catch (e) {
      if (i == maxTries - 1) rethrow;
    }
  }
  throw StateError('unreachable');
}
